//go:build !linux && !darwin

package stats

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
)

// Server tells other processes of the same user of this one's devices.
type Server struct{}

// Serve starts a server; not on this system, which does not tell the user of a
// connecting process.
func Serve(process string, read func() []Device) (*Server, error) {
	return nil, fmt.Errorf("stats: processes are not asked on %s: %w", runtime.GOOS, syscall.ENOTSUP)
}

// Close stops the server.
func (s *Server) Close() error { return nil }

// Tidy removes what processes have left: nothing on this system.
func Tidy() {}

// ReadAll reads the devices of this user's processes: of none on this system.
func ReadAll(ctx context.Context, pids ...int) ([]Device, []error) { return nil, nil }
