//go:build !linux && !darwin

package stats

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
)

// Server answers other processes of the same user with readings of this one's devices.
type Server struct{}

// Serve starts a server; not on this system, which cannot say who connects.
func Serve(process string, read func() []Device) (*Server, error) {
	return nil, fmt.Errorf("stats: processes are not asked on %s: %w", runtime.GOOS, syscall.ENOTSUP)
}

// Path is the socket's.
func (s *Server) Path() string { return "" }

// Close stops the server.
func (s *Server) Close() error { return nil }

// Processes lists the sockets of this user's processes: none on this system.
func Processes(pids ...int) ([]string, error) { return nil, nil }

// ReadProcess reads the devices of the process that listens on a socket.
func ReadProcess(ctx context.Context, path string) (*Answer, error) {
	return nil, fmt.Errorf("%s: processes are not asked on %s: %w", path, runtime.GOOS, syscall.ENOTSUP)
}
