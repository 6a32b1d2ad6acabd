//go:build !linux

package netlinkmgr

import (
	"fmt"
	"runtime"
	"syscall"
)

// Running returns ENOTSUP: RDMA links are Linux's.
func Running() (Kernel, error) {
	return Kernel{}, &OpError{"manage RDMA links on " + runtime.GOOS, fmt.Errorf("only Linux has them; the soft device works here: %w", syscall.ENOTSUP)}
}
