// Package powerloss rebuilds the files on a disk after a power loss at a given moment of a program's run, from a strace of the
// program's system calls. It is for tests: acknowledged data must be on every such disk.
//
// Only synced data is certain to be on disk: a file's bytes after fsync of the file, its name after fsync of the folder. Unsynced
// writes may be complete, missing or partial, in any order: a write is torn at sectors of 512 bytes. Names are kept or lost
// independently. Every journaling file system promises more than that.
package powerloss
