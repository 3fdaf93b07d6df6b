// Package decide is the write path: from a durable dialogue to stored memories. It declares the interfaces of deciders and summarisers;
// rules/ implements them without a model.
package decide
