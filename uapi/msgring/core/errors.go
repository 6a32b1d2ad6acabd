package core

import (
	"fmt"
	"syscall"
)

// ProtocolError is a breach of the protocol by the peer. It Is EPROTO.
type ProtocolError struct{ Breach string }

func breach(format string, args ...any) *ProtocolError {
	return &ProtocolError{Breach: fmt.Sprintf(format, args...)}
}

// Error says what the peer did.
func (e *ProtocolError) Error() string { return "message ring: the peer sent " + e.Breach }

// Unwrap is EPROTO.
func (e *ProtocolError) Unwrap() error { return syscall.EPROTO }
