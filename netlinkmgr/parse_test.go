package netlinkmgr

import (
	"context"
	"encoding/hex"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/nldev"
	"github.com/rdmashim/rdmashim/tests/must"
)

// recordedAnswers reads the answers of a real kernel, with their commands.
func recordedAnswers(t testing.TB) (list []struct {
	command string
	b       []byte
}) {
	text := must.Get(os.ReadFile("../tests/netlinktest/testdata/nldev-6.1.txt"))(t)
	command := ""
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case "#":
			command, _, _ = strings.Cut(strings.TrimPrefix(rest, "RDMA_NLDEV_CMD_"), " ")
		case "<":
			b := must.Get(hex.DecodeString(rest))(t)
			list = append(list, struct {
				command string
				b       []byte
			}{command, b})
		}
	}
	require.Greater(t, len(list), 10)
	return list
}

// parse takes an answer as the call does that asks with the command.
func parse(t testing.TB, command string, b []byte) error {
	m := New(Kernel{RDMA: func(context.Context, Request) ([][]byte, error) { return [][]byte{b}, nil }})
	ctx, d := t.Context(), Device{Name: "rxe0"}
	calls := map[string]func() error{
		"GET":           func() error { _, err := m.Devices(ctx); return err },
		"PORT_GET":      func() error { _, err := m.Port(ctx, d, 1); return err },
		"SYS_GET":       func() error { _, err := m.System(ctx); return err },
		"RES_GET":       func() error { _, err := m.Summary(ctx, d); return err },
		"RES_QP_GET":    func() error { _, err := m.QPs(ctx, d); return err },
		"RES_CM_ID_GET": func() error { _, err := m.CMIDs(ctx, d); return err },
		"RES_CQ_GET":    func() error { _, err := m.CQs(ctx, d); return err },
		"RES_MR_GET":    func() error { _, err := m.MRs(ctx, d); return err },
		"RES_PD_GET":    func() error { _, err := m.PDs(ctx, d); return err },
		"GET_CHARDEV":   func() error { _, err := m.CharDev(ctx, d, "uverbs"); return err },
		"STAT_GET":      func() error { _, err := m.Counters(ctx, d, 1); return err },
		"RES_CTX_GET":   func() error { _, err := m.Contexts(ctx, d); return err },
		"RES_SRQ_GET":   func() error { _, err := m.SRQs(ctx, d); return err },
	}
	require.Contains(t, calls, command)
	return calls[command]()
}

// TestTruncated: an answer that ends inside an attribute is an error.
func TestTruncated(t *testing.T) {
	for _, a := range recordedAnswers(t) {
		require.NoError(t, parse(t, a.command, a.b))
		whole := map[int]bool{0: true}
		for at := 0; at < len(a.b); {
			n := int(a.b[at]) | int(a.b[at+1])<<8
			at += n
			whole[at] = true // the last attribute's pad may be missing
			for ; at%4 != 0; at++ {
				whole[at+1] = true
			}
		}
		for n := range a.b {
			if err := parse(t, a.command, a.b[:n]); !whole[n] {
				require.ErrorIs(t, err, syscall.EBADMSG, "command %s, %d bytes of %d", a.command, n, len(a.b))
			}
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
		require.ErrorIs(t, parse(t, command, b), syscall.EBADMSG, command)
	}
}
