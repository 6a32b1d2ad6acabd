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
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
)

// TestKnownErrors: each reason is found in the error, and so is the errno that
// TCP gives for it.
func TestKnownErrors(t *testing.T) {
	c := &Conn{}
	for _, row := range []struct {
		reason, want error
		timeout      bool
	}{
		{uapi.ErrPeerDisconnected, syscall.ECONNRESET, false},
		{fmt.Errorf("reset by the peer: %w", syscall.ECONNRESET), syscall.ECONNRESET, false},
		{errors.Join(uapi.ErrQPFailed, &uapi.WCError{WC: uapi.WC{Status: uapi.WCRetryExcErr}}), syscall.ETIMEDOUT, true},
		{&uapi.WCError{WC: uapi.WC{Status: uapi.WCRNRRetryExcErr}}, syscall.ETIMEDOUT, true},
		{fmt.Errorf("%w: a keepalive", uapi.ErrQPFailed), syscall.ECONNRESET, false},
		{uapi.ErrPeerSilent, syscall.ETIMEDOUT, true},
		{uapi.ErrUnreachable, syscall.ETIMEDOUT, true},
		{uapi.ErrRefused, syscall.ECONNREFUSED, false},
		{&uapi.RejectError{Reason: uapi.RejectedByProgram}, syscall.ECONNREFUSED, false},
		{&uapi.WCError{WC: uapi.WC{Status: uapi.WCRemAccessErr}}, syscall.EPROTO, false},
		{fmt.Errorf("a wild immediate: %w", syscall.EPROTO), syscall.EPROTO, false},
		{uapi.ErrDeviceGone, syscall.ENODEV, false},
		{uapi.ErrDisconnected, net.ErrClosed, false},
		{net.ErrClosed, net.ErrClosed, false},
		{os.ErrDeadlineExceeded, os.ErrDeadlineExceeded, true},
		{&uapi.OpError{Op: "Dial", Err: context.DeadlineExceeded}, context.DeadlineExceeded, true},
		{&uapi.OpError{Op: "Dial", Err: context.Canceled}, context.Canceled, false},
		{syscall.EPIPE, syscall.EPIPE, false},
		{errors.New("another"), nil, false},
	} {
		err := c.failed("read", row.reason)
		require.ErrorIs(t, err, row.reason)
		if row.want != nil {
			require.ErrorIs(t, err, row.want)
			require.Contains(t, err.Error(), row.want.Error())
		}
		var e net.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, row.timeout, e.Timeout(), "%v", row.reason)
		require.True(t, strings.HasPrefix(err.Error(), "read rdma "), err.Error())
		require.NotContains(t, err.Error(), "\n")
	}
	local := errors.Join(uapi.ErrQPFailed, &uapi.WCError{WC: uapi.WC{Status: uapi.WCLocLenErr}})
	require.NotErrorIs(t, c.failed("read", local), syscall.ECONNRESET)
	require.NoError(t, c.failed("read", nil))
	require.Equal(t, io.EOF, c.failed("read", io.EOF))
}
