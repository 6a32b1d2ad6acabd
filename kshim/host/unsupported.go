//go:build !linux || !(amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package host

import (
	"fmt"
	"runtime"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
)

// New answers ENOTSUP: this system has no kernel of that kind.
func New(Options) (kshim.Kernel, error) {
	return nil, fmt.Errorf("RDMA devices of the kernel need 64-bit little-endian Linux, this is %s/%s; soft devices work here: %w",
		runtime.GOOS, runtime.GOARCH, syscall.ENOTSUP)
}
