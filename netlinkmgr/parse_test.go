package netlinkmgr_test

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/nldev"
	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
)

// parse takes an answer as the call does that asks with the command.
func parse(t testing.TB, command uint16, b []byte) error {
	m := netlinkmgr.New(netlinkmgr.Kernel{RDMA: func(context.Context, netlinkmgr.Request) ([][]byte, error) { return [][]byte{b}, nil }})
	ctx, d := t.Context(), netlinkmgr.Device{Name: "rxe0"}
	calls := map[uint16]func() error{
		nldev.Command("GET"):           func() error { _, err := m.Devices(ctx); return err },
		nldev.Command("PORT_GET"):      func() error { _, err := m.Port(ctx, d, 1); return err },
		nldev.Command("SYS_GET"):       func() error { _, err := m.System(ctx); return err },
		nldev.Command("RES_GET"):       func() error { _, err := m.Summary(ctx, d); return err },
		nldev.Command("RES_QP_GET"):    func() error { _, err := m.QPs(ctx, d); return err },
		nldev.Command("RES_CM_ID_GET"): func() error { _, err := m.CMIDs(ctx, d); return err },
		nldev.Command("RES_CQ_GET"):    func() error { _, err := m.CQs(ctx, d); return err },
		nldev.Command("RES_MR_GET"):    func() error { _, err := m.MRs(ctx, d); return err },
		nldev.Command("RES_PD_GET"):    func() error { _, err := m.PDs(ctx, d); return err },
		nldev.Command("GET_CHARDEV"):   func() error { _, err := m.CharDev(ctx, d, "uverbs"); return err },
		nldev.Command("STAT_GET"):      func() error { _, err := m.Counters(ctx, d, 1); return err },
		nldev.Command("RES_CTX_GET"):   func() error { _, err := m.Contexts(ctx, d); return err },
		nldev.Command("RES_SRQ_GET"):   func() error { _, err := m.SRQs(ctx, d); return err },
	}
	require.Contains(t, calls, command)
	return calls[command]()
}

// TestTruncated: an answer that ends inside an attribute is an error.
func TestTruncated(t *testing.T) {
	answers := must.Get(netlinktest.Recorded())(t).Answers
	require.Greater(t, len(answers), 10)
	for request, list := range answers {
		number, _, _ := strings.Cut(request, " ")
		command := uint16(must.Get(strconv.ParseUint(number, 10, 16))(t))
		for _, b := range list {
			truncated(t, command, b)
		}
	}
}

// truncated looks at each beginning of an answer.
func truncated(t *testing.T, command uint16, b []byte) {
	require.NoError(t, parse(t, command, b))
	whole := map[int]bool{0: true}
	for at := 0; at < len(b); {
		n := int(b[at]) | int(b[at+1])<<8
		at += n
		whole[at] = true // the last attribute's pad may be missing
		for ; at%4 != 0; at++ {
			whole[at+1] = true
		}
	}
	for n := range b {
		if err := parse(t, command, b[:n]); !whole[n] {
			require.ErrorIs(t, err, syscall.EBADMSG, "command %d, %d bytes of %d", command, n, len(b))
		}
	}
}

// TestIncomplete: objects without their key attributes are errors.
func TestIncomplete(t *testing.T) {
	head := func(table string, entry ...any) []byte {
		b := nldev.Encode("DEV_INDEX", uint32(0), "DEV_NAME", "rxe0")
		if table != "" {
			b = append(b, nldev.Encode(table, nldev.Nested(nldev.Encode(strings.TrimSuffix(table, "S")+"_ENTRY", nldev.Nested(nldev.Encode(entry...)))))...)
		}
		return b
	}
	for command, b := range map[string][]byte{
		"GET":           nldev.Encode("DEV_NAME", "rxe0"),
		"PORT_GET":      head(""),
		"RES_GET":       head(""),
		"STAT_GET":      head("STAT_HWCOUNTERS", "STAT_HWCOUNTER_ENTRY_NAME", "x"),
		"RES_QP_GET":    head("RES_QP", "RES_LQPN", uint32(1)),
		"RES_CM_ID_GET": head("RES_CM_ID", "RES_PS", uint32(1)),
		"RES_CQ_GET":    head("RES_CQ"),
		"RES_MR_GET":    head("RES_MR"),
		"RES_PD_GET":    head("RES_PD"),
		"RES_SRQ_GET":   head("RES_SRQ"),
		"GET_CHARDEV":   nldev.Encode("UVERBS_DRIVER_ID", uint32(14)),
		"RES_CTX_GET":   head(""),
	} {
		require.ErrorIs(t, parse(t, nldev.Command(command), b), syscall.EBADMSG, command)
	}
}
