//go:build !linux

package bridge

import (
	"context"
	"fmt"
	"io"
	"syscall"
)

func run(context.Context, options, io.Writer, io.Writer) error {
	return fmt.Errorf("bridge needs Linux's packet sockets: %w", syscall.ENOTSUP)
}
