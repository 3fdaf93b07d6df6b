// Package decide is the write path: from a durable dialogue to stored memories. It declares what it needs of a decider
// and a summariser; rules/ needs no model.
package decide
