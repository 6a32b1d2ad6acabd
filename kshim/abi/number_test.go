package abi

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNumbersAreThoseOfC holds the constants that are not generated.
func TestNumbersAreThoseOfC(t *testing.T) {
	l := golden(t)
	for c, v := range map[string]uint64{
		"RDMA_VERBS_IOCTL":                RDMAVerbsIoctl,
		"IB_USER_VERBS_CMD_COMMAND_MASK":  uint64(CmdCommandMask),
		"IB_USER_VERBS_CMD_FLAG_EXTENDED": uint64(CmdFlagExtended),
		"IB_UVERBS_ACCESS_OPTIONAL_RANGE": uint64(AccessOptionalRange),
		"UVERBS_ATTR_F_MANDATORY":         AttrFMandatory,
		"UVERBS_ATTR_F_VALID_OUTPUT":      AttrFValidOutput,
		"RDMA_USER_CM_ABI_VERSION":        UCMABIVersion,
		"RDMA_MAX_PRIVATE_DATA":           UCMMaxPrivateData,
		"RDMA_OPTION_ID":                  uint64(UCMLevelID),
		"RDMA_OPTION_IB":                  uint64(UCMLevelIB),
		"RDMA_OPTION_ID_TOS":              uint64(UCMOptionTOS),
		"RDMA_OPTION_ID_REUSEADDR":        uint64(UCMOptionReuseAddr),
		"RDMA_OPTION_ID_AFONLY":           uint64(UCMOptionAFOnly),
		"RDMA_OPTION_ID_ACK_TIMEOUT":      uint64(UCMOptionAckTimeout),
		"RDMA_OPTION_IB_PATH":             uint64(UCMOptionIBPath),
		"AF_INET":                         AFInet,
		"AF_INET6":                        AFInet6,
	} {
		want, ok := l.value[c]
		require.True(t, ok, c)
		require.Equal(t, want, v, c)
	}
	require.Equal(t, l.size["sockaddr_in"], SockaddrInSize)
	require.Equal(t, l.size["sockaddr_in6"], SockaddrIn6Size)
}

// TestNumbersMeasured holds the numbers that the headers leave out against
// masks, states and statuses seen on Linux 6.1.
func TestNumbersMeasured(t *testing.T) {
	require.EqualValues(t, 0x39, QPMaskState|QPMaskAccessFlags|QPMaskPkeyIndex|QPMaskPort)
	require.EqualValues(t, 0x129181, QPMaskState|QPMaskAV|QPMaskPathMTU|QPMaskRQPSN|QPMaskMinRNRTimer|QPMaskMaxDestRdAtomic|QPMaskDestQPN)
	require.EqualValues(t, 0x12e01, QPMaskState|QPMaskTimeout|QPMaskRetryCnt|QPMaskRNRRetry|QPMaskMaxQPRdAtomic|QPMaskSQPSN)
	require.EqualValues(t, 6, QPSErr)
	require.EqualValues(t, 2, WCLocQPOpErr)
	require.EqualValues(t, 5, WCWRFlushErr)
	require.EqualValues(t, 9, WCRemInvReqErr)
	require.EqualValues(t, 10, WCRemAccessErr)
	require.EqualValues(t, 11, WCRemOpErr)
	require.EqualValues(t, 12, WCRetryExcErr)
	require.EqualValues(t, 13, WCRNRRetryExcErr)
	require.EqualValues(t, 21, WCGeneralErr)
	require.EqualValues(t, 128, WCRecv)
	require.EqualValues(t, 129, WCRecvRDMAWithImm)
	require.EqualValues(t, 5, EventSQDrained)
	require.EqualValues(t, 9, EventPortActive)
	require.EqualValues(t, 10, EventPortErr)
	require.EqualValues(t, 8, UCMRejInvalidServiceID)
	require.EqualValues(t, 10, UCMEventDisconnected)
}

func TestStrings(t *testing.T) {
	for want, v := range map[string]fmt.Stringer{
		"REM_ACCESS_ERR":            WCRemAccessErr,
		"SUCCESS":                   WCSuccess,
		"WCStatus(99)":              WCStatus(99),
		"RECV_RDMA_WITH_IMM":        WCRecvRDMAWithImm,
		"RTS":                       QPSRTS,
		"LOCAL_WRITE|REMOTE_ATOMIC": AccessLocalWrite | AccessRemoteAtomic,
		"LOCAL_WRITE|0x80000000":    AccessLocalWrite | 1<<31,
		"0":                         SendFlags(0),
		"POST_SEND":                 CmdPostSend,
		"CQ_ERR":                    EventCQErr,
		"4096":                      MTU4096,
		"RXE":                       DriverRXE,
	} {
		require.Equal(t, want, v.String())
	}
}

func TestMTUBytes(t *testing.T) {
	for v, want := range map[MTU]int{0: 0, MTU256: 256, MTU512: 512, MTU1024: 1024, MTU2048: 2048, MTU4096: 4096, 6: 0, 255: 0} {
		require.Equal(t, want, v.Bytes())
	}
	for n, want := range map[int]MTU{-1: 0, 255: 0, 256: MTU256, 511: MTU256, 512: MTU512, 1420: MTU1024, 4095: MTU2048, 4096: MTU4096, 1 << 30: MTU4096} {
		require.Equal(t, want, FitMTU(n), n)
	}
}

func TestEventElement(t *testing.T) {
	require.Equal(t, ElementCQ, EventCQErr.Element())
	require.Equal(t, ElementQP, EventQPFatal.Element())
	require.Equal(t, ElementPort, EventPortActive.Element())
	require.Equal(t, ElementSRQ, EventSRQErr.Element())
	require.Equal(t, ElementWQ, EventWQFatal.Element())
}
