//go:build !linux

package netlinkmgr

import (
	"fmt"
	"runtime"
	"syscall"
)

// Open gives ENOTSUP: RDMA links are Linux's.
func Open() (*Manager, error) {
	return nil, &OpError{"manage RDMA links on " + runtime.GOOS, fmt.Errorf("only Linux has them; the soft device works here: %w", syscall.ENOTSUP)}
}
