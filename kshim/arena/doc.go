// Package arena hands out memory that another process may be let read: pages of
// sealed memfds. It is there on Linux only, and knows nothing of RDMA.
//
// An arena is one memfd of 16 MiB, or of the size asked for where that is more,
// so that a thousand allocations cost a handful of descriptors. Its seals keep
// its size, and let no other process write: the process that made it keeps the
// only writable mapping that there can be.
//
//	Alloc   gives zeroed pages, from an arena or a new one
//	Free    takes them back; an arena goes when it is empty
//	Keep    lets an empty arena stay, for the next Alloc
//	Find    tells where memory lies: the arena's number, and the offset
//	Open    gives a descriptor of an arena, to be sent to the other process
//	Watch   tells of arenas that go
package arena
