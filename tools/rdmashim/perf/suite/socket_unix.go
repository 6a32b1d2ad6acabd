//go:build unix

package suite

import "syscall"

func read(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }
