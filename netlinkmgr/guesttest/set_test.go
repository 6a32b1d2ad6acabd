//go:build guest && linux

package guesttest

import (
	"context"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/nldev"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestSetLikeIproute2: lines that change something, or that rdma_rxe refuses,
// end as iproute2's do: with success or not, with the same output, and with the
// same state.
func TestSetLikeIproute2(t *testing.T) {
	rdma := theirs(t)
	b := makeBusy(t)
	d := b.r.Device
	state := func() string {
		return run(t, 0, rdma, "-j", "dev", "show").stdout + run(t, 0, rdma, "system", "show").stdout
	}
	for i, line := range []string{
		"dev set nosuch name x",
		"system set netns shared", "system set netns exclusive", "system set netns shared",
		"dev set " + d + " name again", "dev set again name " + d, "dev set " + d + " name " + d,
	} {
		t.Run(line, func(t *testing.T) {
			before := state()
			forms := []string{"", "-j"}
			if i > 1 {
				forms = forms[:1] // a refusal and a success have shown the other
			}
			for j, form := range forms {
				args := strings.Fields(form + " " + line)
				want := run(t, 0, rdma, args...)
				after := state()
				if after != before {
					undo(t, rdma, before, d)
				}
				got := run(t, 0, "rdmashim", args...)
				require.Equal(t, want.code == 0, got.code == 0, "%v\n%v", want, got)
				require.Equal(t, after, state())
				if got.code != 0 {
					require.Empty(t, got.stdout)
					require.Equal(t, 1, strings.Count(got.stderr, "\n"))
				} else {
					require.Equal(t, noArray(want.stdout), noArray(got.stdout))
				}
				if j < len(forms)-1 && after != before {
					undo(t, rdma, before, d)
				}
			}
		})
	}
}

// noArray drops the empty array that iproute2 prints with -j whatever was done.
func noArray(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "[]\n", ""), "[ ]\n", "")
}

// undo gives the device its name back and the system its mode.
func undo(t *testing.T, rdma, before, d string) {
	if strings.Contains(before, `"again"`) {
		d = "again"
	}
	for _, r := range rows(t, run(t, 0, rdma, "-j", "dev", "show")) {
		if name := r["ifname"].(string); name != d {
			require.Zero(t, run(t, 0, rdma, "dev", "set", name, "name", d).code)
		}
	}
	for _, mode := range []string{"shared", "exclusive"} {
		if strings.Contains(before, "netns "+mode) && !strings.Contains(run(t, 0, rdma, "system", "show").stdout, "netns "+mode) {
			require.Zero(t, run(t, 0, rdma, "system", "set", "netns", mode).code)
		}
	}
}

// TestExtendedAck: the kernel's own words come with its refusal.
func TestExtendedAck(t *testing.T) {
	noLinks(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	d := device(t, ensure(t, "ta").Device)
	k := must.Get(netlinkmgr.Running())(t)
	attrs := nldev.Encode("DEV_INDEX", d.Index, "DEV_NAME", strings.Repeat("x", 80)) // a name that is too long
	_, err := k.RDMA(context.Background(), netlinkmgr.Request{Command: "SET", Attrs: attrs})
	require.Error(t, err)
	var errno syscall.Errno
	require.ErrorAs(t, err, &errno)
	require.NotEqual(t, errno.Error(), err.Error(), "nothing but the number: %v", err)
	t.Log(err)
}

var comms = regexp.MustCompile(`(comm"?:? ?"?)[^" ]+`)

// TestSRQLikeIproute2: shared receive queues, and the queue pairs that receive
// from them.
func TestSRQLikeIproute2(t *testing.T) {
	rdma := theirs(t)
	b := makeBusy(t)
	srq := must.Get(b.pd.CreateSRQ(verbs.SRQInit{MaxWR: 8, MaxSGE: 1}))(t)
	for range 3 {
		b.queuePair(t, srq)
	}
	list := must.Get(manager(t).SRQs(t.Context(), device(t, b.r.Device)))(t)
	require.Len(t, list, 1)
	require.Equal(t, b.thread, list[0].Owner.PID)
	for _, line := range []string{"resource show srq", "res show srq dev " + b.r.Device, "resource show srq type basic", "resource show srq srqn 0-9999", "-dd resource show srq"} {
		for _, form := range []string{"-j", ""} {
			args := strings.Fields(form + " " + line)
			want, got := run(t, 0, rdma, args...), run(t, 0, "rdmashim", args...)
			require.Zero(t, want.code, want.stderr)
			require.Contains(t, want.stdout, "BASIC")
			// iproute2 6.1 prints bytes that have come to lie where the command
			// was.
			want.stdout = comms.ReplaceAllString(want.stdout, "${1}"+comm(t))
			require.Equal(t, want, got)
		}
	}
}
