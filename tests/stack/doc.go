// Package stack tests several processes on whole stacks: they listen on one
// address, share memory, are killed, stopped and started again, and other users
// and hostile programs stand beside them. It uses package uapi as programs do.
//
// It has no functions. tests/conform compares kernels, and the tests of uapi
// look at one process.
//
// A test flows: it starts this test binary once more as a server or a victim
// (tests/child), in a network namespace of its own where addresses must be free
// (tests/netns), connects to it, ends it in some way, and looks at what is
// left.
package stack
