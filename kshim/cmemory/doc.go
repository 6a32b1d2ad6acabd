// Package cmemory gives a Go library the memory of the C program that it is
// loaded into, by address: Slice makes an address a slice, Probe asks the
// system whether the memory is there, and Guard makes EFAULT of a fault while
// it is read or written.
//
// It allocates and copies nothing, and it knows no memory of Go: an address in
// Go's heap is refused.
//
// A call flows: Slice and Probe when memory is registered, and Guard around
// each copy afterwards, since the program may unmap the memory at any time.
package cmemory
