//go:build !unix

package vm

// watchSize does nothing where a terminal tells no change of its size.
func watchSize(func()) (stop func()) { return func() {} }
