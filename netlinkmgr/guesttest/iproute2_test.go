//go:build guest && linux

package guesttest

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
)

// theirs is iproute2's rdma. The rdma on the guest's PATH is this project's.
func theirs(t *testing.T) string {
	path := os.Getenv("RDMASHIM_TEST_RDMA")
	if path == "" {
		path = "/usr/bin/rdma"
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: add the distribution's tool to the guest: rdmashim vm test --add /usr/bin/rdma (package iproute2)", err)
	}
	require.Contains(t, run(t, 0, path, "-V").stdout, "iproute2", "this must not be our own")
	return path
}

// newer are keys that iproute2 learnt after 6.1, which is what the commands
// follow: privileged-qkey with 6.8, protocol with 6.11, monitor with 6.13. Ours
// shows what the kernel sends, and the protocol with details.
var newer = map[string]bool{"privileged-qkey": true, "protocol": true, "monitor": true}

// TestLikeIproute2: the same state gives the same objects, keys, values and
// order in JSON, and the same text.
func TestLikeIproute2(t *testing.T) {
	rdma := theirs(t)
	b := makeBusy(t)
	b.connect(t)
	d := b.r.Device
	for _, line := range amount.Some([]string{
		"link show", "link show " + d + "/1", "-d link show",
		"dev show", "dev show " + d, "-d dev show",
		"resource show", "resource show " + d,
		"resource show qp", "resource show cq", "resource show mr", "resource show pd", "resource show cm_id", "resource show ctx",
		"resource show qp link " + d + "/1", "resource show qp link " + d + "/-", "resource show cm_id link " + d,
		"resource show mr dev " + d, "resource show qp link " + d + " state init,rts", "resource show qp type gsi", "res show qp lqpn 1,17-999999",
		"statistic show", "stat show link " + d + "/1", "system show",
	}, 4) {
		t.Run(line, func(t *testing.T) {
			args := strings.Fields(line)
			differ := false // in newer keys only
			for _, form := range []string{"-j", "", "-jp"} {
				if form == "-jp" && line != "link show" {
					continue // all have one printer
				}
				full := args
				if form != "" {
					full = append([]string{form}, args...)
				}
				want, got := onStillState(t, rdma, full)
				if line == "link show" {
					require.Equal(t, got, run(t, 0, "rdma", full...), "called as rdma, the same")
				}
				require.Equal(t, 0, want.code, want.stderr)
				require.Equal(t, 0, got.code, got.stderr)
				if form == "-j" {
					require.NotEmpty(t, decode(t, got.stdout), "the comparison compares nothing")
					differ = compareKeys(t, want.stdout, got.stdout)
				}
				if !differ {
					require.Equal(t, want.stdout, got.stdout)
				}
			}
		})
	}
}

// onStillState runs both tools on the same state: the connection manager
// repeats its request, so counters and packet numbers move now and then, and
// iproute2's output before and after must be the same.
func onStillState(t *testing.T, rdma string, args []string) (want, got outcome) {
	for range 10 {
		want = run(t, 0, rdma, args...)
		got = run(t, 0, "rdmashim", args...)
		if run(t, 0, rdma, args...) == want {
			return want, got
		}
	}
	t.Fatalf("the state moves: %v", args)
	return want, got
}

// compareKeys compares rows key by key, but for newer keys that one side does
// not know; it says whether there were such.
func compareKeys(t *testing.T, want, got string) (differ bool) {
	if !strings.HasPrefix(want, "[") {
		return true // its system show knows no JSON
	}
	w, g := decode(t, want), decode(t, got)
	require.Len(t, g, len(w))
	for i := range w {
		for k := range newer {
			_, theirs := w[i][k]
			_, ours := g[i][k]
			if theirs != ours {
				differ = true
				delete(w[i], k)
				delete(g[i], k)
			}
		}
	}
	require.Equal(t, w, g)
	return differ
}

func decode(t *testing.T, s string) (list []map[string]any) {
	require.NoError(t, json.Unmarshal([]byte(s), &list), s)
	return list
}

// TestIproute2SeesOurs: a link made by one is deleted by the other.
func TestIproute2SeesOurs(t *testing.T) {
	rdma := theirs(t)
	m := noLinks(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	ensure(t, "ta")
	require.Zero(t, run(t, 0, rdma, "link", "delete", "rxe0").code)
	_, err := m.Device(t.Context(), "rxe0")
	require.Error(t, err)
	require.Zero(t, run(t, 0, rdma, "link", "add", "theirs", "type", "rxe", "netdev", "ta").code)
	r := ensure(t, "ta")
	require.Equal(t, "theirs", r.Device)
	require.Zero(t, run(t, 0, "rdma", "link", "delete", "theirs").code)
}
