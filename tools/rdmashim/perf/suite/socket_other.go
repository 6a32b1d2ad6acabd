//go:build !unix

package suite

import "syscall"

func read(uintptr, []byte) (int, error) { return 0, syscall.ENOTSUP }
