//go:build !linux

package preload

import (
	"fmt"
	"syscall"
)

// Remove is a word of Linux's.
const Remove = "remove-tree"

var errLinux = fmt.Errorf("C programs of rdma-core run on Linux only: %w", syscall.ENOTSUP)

// Start is for Linux.
func Start(Program, Libraries, []string, []string) error { return errLinux }

// RemoveTree is for Linux.
func RemoveTree(string) error { return errLinux }

func privileged(string) bool { return false }
