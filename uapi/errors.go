package uapi

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim"
)

// OpError is the error of every call of this package: which call failed, on
// what, and why. errors.Is finds the errno in it:
//
//	EBADF    the handle is zero, stale, closed or of another device
//	EINVAL   an argument or the queue pair's state is wrong
//	ENOMEM   the queue is full, or a table of the device is
//	EBUSY    something still uses the object
//	EFAULT   the memory is not there, or may not be written
//	EADDRINUSE, ENODEV, ENOTSUP   Open
//
// Contexts' errors (context.Canceled, context.DeadlineExceeded) and
// net.ErrClosed are found the same way.
type OpError struct {
	Op     string // the call: "PostWrite"
	Object string // the call's object: "qp 17", or ""
	Err    error
}

func (e *OpError) Error() string {
	if e.Object == "" {
		return "rdma " + e.Op + ": " + e.Err.Error()
	}
	return "rdma " + e.Op + " " + e.Object + ": " + e.Err.Error()
}

func (e *OpError) Unwrap() error { return e.Err }

// Timeout reports whether a deadline passed, as net.Error does.
func (e *OpError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Err, &t) && t.Timeout()
}

// WCError is a work completion with a status other than WCSuccess, as an
// error. WC.Err makes it.
type WCError struct {
	WC WC
	// Cause is why the connection of a completion with WCWRFlushErr had ended:
	// ErrPeerDisconnected, ErrPeerSilent, ErrDisconnected … (see
	// Device.Cause). It is nil where the queue pair had failed, was not
	// connected by address, or the connection stood when the completion was
	// polled.
	Cause error
	// Peer is the address of the peer's device, with its UDP port, and PeerQPN
	// the number of its queue pair; zero of one that was not connected.
	Peer    netip.AddrPort
	PeerQPN uint32
}

func (e *WCError) Error() string {
	text := fmt.Sprintf("rdma qp %d: work request %d, %v", int(e.WC.QP), int64(e.WC.WRID), e.WC.Opcode)
	if e.Peer.IsValid() {
		text += fmt.Sprintf(", peer %v qp %d", e.Peer, e.PeerQPN)
	}
	text += ": " + e.WC.Status.String()
	if e.WC.VendorErr != 0 {
		text += fmt.Sprintf(" (vendor error %#x)", e.WC.VendorErr)
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

func (e *WCError) Unwrap() error { return e.Cause }

// StatusOf is the status of the failed request whose *WCError err is or wraps:
//
//	if uapi.StatusOf(err) == uapi.WCRemAccessErr {
//
// It is WCSuccess for nil, and WCGeneralErr for an error of anything else.
func StatusOf(err error) Status {
	var failed *WCError
	switch {
	case err == nil:
		return WCSuccess
	case errors.As(err, &failed):
		return failed.WC.Status
	}
	return WCGeneralErr
}

// errDeviceClosed is the error of calls on a closed device.
const errDeviceClosed = kshim.ClosedError("the device is closed")

// opError wraps err once.
func opError(op, object string, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Object: object, Err: err}
}

func qpName(qp QP) string { return fmt.Sprintf("qp %d", int(qp)) }
func mrName(mr MR) string { return fmt.Sprintf("mr %d", int(mr)) }
func cqName(cq CQ) string { return fmt.Sprintf("cq %d", int(cq)) }
func ahName(ah AH) string { return fmt.Sprintf("ah %d", int(ah)) }
func pdName(pd PD) string { return fmt.Sprintf("pd %d", int(pd)) }
func mwName(mw MW) string { return fmt.Sprintf("mw %d", int(mw)) }

func srqName(srq SRQ) string { return fmt.Sprintf("srq %d", int(srq)) }
