// Package fault turns a bad access to a program's memory into an error: memory
// that a program gave away may be unmapped, or cut short, at any time.
//
// A function that touches such memory begins with
//
//	defer fault.End(fault.Begin(), &err, syscall.EFAULT)
//
// It is not for memory that the project's own code has mapped, where a fault is
// a mistake.
package fault
