//go:build !linux

package preload

import (
	"fmt"
	"io"
	"syscall"
)

var errLinux = fmt.Errorf("C programs of rdma-core run on Linux only: %w", syscall.ENOTSUP)

// Start is for Linux.
func Start(Program, Libraries, []string, []string) error { return errLinux }

// SweepWhenEnded is for Linux.
func SweepWhenEnded() error { return errLinux }

// BuildLibraries is for Linux.
func BuildLibraries(string) error { return errLinux }

func buildBeside(string, io.Writer) error { return errLinux }

func checkOwn(string) error { return errLinux }

func privileged(string) bool { return false }
