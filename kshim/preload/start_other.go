//go:build !linux

package preload

import (
	"fmt"
	"syscall"
)

// Remove and Build are words of Linux's.
const (
	Remove = "remove-tree"
	Build  = "build-libraries"
)

var errLinux = fmt.Errorf("C programs of rdma-core run on Linux only: %w", syscall.ENOTSUP)

// Start is for Linux.
func Start(Program, Libraries, []string, []string) error { return errLinux }

// RemoveTree is for Linux.
func RemoveTree(string) error { return errLinux }

// BuildLibraries is for Linux.
func BuildLibraries(string) error { return errLinux }

func buildBeside(string) error { return errLinux }

func privileged(string) bool { return false }
