package uapi

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/uapi/internal/device"
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

// Each 5-bit code has the time that the wire's has, is found by it, and by any
// time that is longer than that of the code before.
func TestTimeCodes(t *testing.T) {
	before := [2]time.Duration{}
	for i := 1; i <= 32; i++ {
		code := uint8(i % 32)
		if code > 0 {
			ack := ackTime(code)
			require.EqualValues(t, wire.AckTimeout(code).Nanoseconds(), ack)
			require.Equal(t, []uint8{code, code}, []uint8{timeCode(ack, ackTime), timeCode(before[0]+1, ackTime)})
			before[0] = ack
		}
		rnr := rnrTime(code)
		require.EqualValues(t, wire.RNRTimer(code).Nanoseconds(), rnr)
		require.Equal(t, []uint8{code, code}, []uint8{timeCode(rnr, rnrTime), timeCode(before[1]+1, rnrTime)})
		before[1] = rnr
	}
	require.Zero(t, timeCode(0, ackTime), "for ever")
	require.Zero(t, timeCode(0, rnrTime), "the longest")
}

// Each event and state of a port has a constant of its kernel's name.
func TestNames(t *testing.T) {
	for i, e := range []EventType{
		EventCQErr, EventQPFatal, EventQPReqErr, EventQPAccessErr, EventCommEst, EventSQDrained, EventPathMig,
		EventPathMigErr, EventDeviceFatal, EventPortActive, EventPortErr, EventLIDChange, EventPkeyChange,
		EventSMChange, EventSRQErr, EventSRQLimitReached, EventQPLastWQEReached, EventClientReregister,
		EventGIDChange, EventWQFatal,
	} {
		require.Equal(t, abi.EventType(i).String(), string(e))
	}
	for i, s := range []PortState{PortNop, PortDown, PortInit, PortArmed, PortActive, PortActiveDefer} {
		require.Equal(t, abi.PortState(i).String(), string(s))
	}
	require.Equal(t, []Kind{KindSoft, KindSim, KindHost}, []Kind{Kind(device.Soft), Kind(device.Sim), Kind(device.Host)})
}
