package uapi

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// Every status has the kernel's number, its verbs name and an explanation.
func TestStatuses(t *testing.T) {
	for s := WCSuccess; s <= WCGeneralErr; s++ {
		require.Equal(t, abi.WCStatus(s).String(), s.Name())
		require.NotContains(t, s.Name(), "(", "status %d has no name", s)
		require.Contains(t, explanations, s)
		require.Equal(t, s.Name()+" ("+explanations[s]+")", s.String())
		require.Equal(t, s, StatusOf(&OpError{Err: fmt.Errorf("%w: %w", ErrQPFailed, &WCError{WC: WC{Status: s}})}))
	}
	require.Equal(t, WCSuccess, StatusOf(nil))
	require.Equal(t, WCGeneralErr, StatusOf(ErrQPFailed), "no request's")
	_, isError := any(WCSuccess).(error)
	require.False(t, isError, "return wc.Status would be an error of what succeeded")
	require.Equal(t, "WCStatus(99) (not a status that verbs knows)", Status(99).String())
	require.Equal(t, "RDMA_WRITE", WCOpWrite.String())
	require.Equal(t, "RECV", OpRecv.String())
	require.Equal(t, "LOCAL_WRITE|REMOTE_READ", (AccessLocalWrite | AccessRemoteRead).String())
	require.Equal(t, "SIGNALED|INLINE", (Signaled | Inline).String())
	require.Equal(t, "qp 17 wr 3: RECV, 5 bytes, immediate 0x2a",
		WC{QP: 17, WRID: 3, Opcode: WCOpRecv, ByteLen: 5, Imm: 42, Flags: WCWithImm}.String())
	require.Contains(t, WC{QP: 17, WRID: 3, Status: WCFatalErr, VendorErr: 7}.Err().Error(), "vendor error 0x7")
}
