package rdmanet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
)

// known are the errors that users of TCP know for the reasons of uapi and
// msgring. The first row that fits holds. An error without a row stays as it
// is, its errno in it.
var known = []struct{ reason, as error }{
	{uapi.ErrDeviceGone, syscall.ENODEV},
	{uapi.ErrPeerSilent, syscall.ETIMEDOUT},
	{syscall.EHOSTUNREACH, syscall.EHOSTUNREACH},
	{syscall.ENETUNREACH, syscall.ENETUNREACH},
	{uapi.ErrUnreachable, syscall.ETIMEDOUT},
	{uapi.ErrRefused, syscall.ECONNREFUSED},
	{syscall.EPROTO, syscall.EPROTO},
	{syscall.ECONNRESET, syscall.ECONNRESET},
	{uapi.ErrPeerDisconnected, syscall.ECONNRESET},
	{uapi.ErrDisconnected, net.ErrClosed},
	{net.ErrClosed, net.ErrClosed},
	{os.ErrDeadlineExceeded, os.ErrDeadlineExceeded},
	{context.DeadlineExceeded, context.DeadlineExceeded},
}

// statuses are the known errors of failed requests.
var statuses = map[uapi.Status]error{
	uapi.WCRetryExcErr:    syscall.ETIMEDOUT,
	uapi.WCRNRRetryExcErr: syscall.ETIMEDOUT,
	uapi.WCRemAccessErr:   syscall.EPROTO,
	uapi.WCRemInvReqErr:   syscall.EPROTO,
}

// reasoned is a known error with its reason.
type reasoned struct{ as, reason error }

// Error is one line.
func (e *reasoned) Error() string {
	reason := strings.ReplaceAll(e.reason.Error(), "\n", "; ")
	if strings.Contains(reason, e.as.Error()) {
		return reason
	}
	return e.as.Error() + ": " + reason
}

// Unwrap gives both.
func (e *reasoned) Unwrap() []error { return []error{e.as, e.reason} }

// Timeout reports whether the known error is one of time, as for TCP.
func (e *reasoned) Timeout() bool {
	t, ok := e.as.(interface{ Timeout() bool })
	return ok && t.Timeout()
}

// translate is err as users of TCP know it.
func translate(err error) error {
	if as, ok := statuses[uapi.StatusOf(err)]; ok {
		return &reasoned{as: as, reason: err}
	}
	for _, row := range known {
		switch {
		case err == row.as:
			return err
		case errors.Is(err, row.reason):
			return &reasoned{as: row.as, reason: err}
		}
	}
	// The peer's device has gone, which a hang-up of shared memory tells before
	// the connection manager does: no request failed.
	if failed := new(uapi.WCError); errors.Is(err, uapi.ErrQPFailed) && !errors.As(err, &failed) {
		return &reasoned{as: syscall.ECONNRESET, reason: err}
	}
	return err
}

// failed is the error of a call of the connection; nil and io.EOF stay.
func (c *Conn) failed(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "rdma", Source: c.local, Addr: c.remote, Err: translate(err)}
}

// name is an address as a caller wrote it.
type name string

func (name) Network() string  { return "rdma" }
func (n name) String() string { return string(n) }

// opError is the error of a call before there is a connection.
func opError(op, addr string, err error) error {
	return &net.OpError{Op: op, Net: "rdma", Addr: name(addr), Err: translate(err)}
}

// HandshakeError is the error of a Dial whose peer is reached, and does not
// speak as this end does: another version or service, or no such protocol at
// all. It Is ECONNREFUSED and uapi.ErrRefused when the peer refused, EPROTO
// when this end did.
type HandshakeError struct {
	Version int    // of the protocol, at the end that refused
	Reason  string // why in a word: "magic", "version", "mode", "service", "limits"
	Text    string // why, by the end that refused
	err     error
}

// Error names the versions of both ends.
func (e *HandshakeError) Error() string {
	between := fmt.Sprintf("this end, of version %d, refuses the peer", msgring.Version)
	if errors.Is(e.err, uapi.ErrRefused) {
		between = fmt.Sprintf("the peer, of version %d, refuses this end, of version %d", e.Version, msgring.Version)
	}
	return fmt.Sprintf("handshake: %s: hello refused (%s): %s", between, e.Reason, e.Text)
}

// Unwrap gives the errno, EPROTONOSUPPORT for another version or mode, and what
// the connection manager said.
func (e *HandshakeError) Unwrap() error { return e.err }

// handshake is err with its refusal in sight.
func handshake(err error) error {
	var refusal *msgring.Refusal
	if errors.As(err, &refusal) {
		return &HandshakeError{Version: int(refusal.Version), Reason: refusal.Reason.String(), Text: refusal.Text, err: err}
	}
	return err
}
