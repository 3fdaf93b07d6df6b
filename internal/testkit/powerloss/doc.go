// Package powerloss rebuilds the files that a disk would have if the power had gone at some moment of a program's run, from the
// program's system calls as strace writes them down. It is for tests: what was acknowledged must be in every such disk.
//
// What a disk has for certain is what was synced: a file's bytes by fsync of the file, its name by fsync of the folder. What was
// written and not synced may be there, may be missing, or may be there in parts, and any of it before any other: a write is torn
// at sectors of 512 bytes. Names come and go on their own. That is less than any journaling file system promises.
package powerloss
