//go:build guest && linux

package guesttest

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// theirs is iproute2's rdma. The rdma on the guest's PATH is this project's.
func theirs(t *testing.T) string {
	t.Helper()
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

// newer are keys that iproute2 prints from the version in which it learnt them:
// privileged-qkey with 6.8, monitor with 6.13, protocol with 6.11.
var newer = map[string][]string{
	"system show": {"privileged-qkey", "monitor"},
	"-d dev show": {"protocol"},
}

// TestLikeIproute2: the same state gives the same objects, keys, values and
// order in JSON, and the same text.
func TestLikeIproute2(t *testing.T) {
	rdma := theirs(t)
	b := makeBusy(t)
	b.connect(t)
	d := b.r.Device
	for _, line := range []string{
		"link show", "link show " + d + "/1", "-d link show",
		"dev show", "dev show " + d, "-d dev show",
		"resource show", "resource show " + d,
		"resource show qp", "resource show cq", "resource show mr", "resource show pd", "resource show cm_id", "resource show ctx",
		"resource show qp link " + d + "/1", "resource show qp link " + d + "/-", "resource show cm_id link " + d,
		"resource show mr dev " + d, "resource show qp link " + d + " state init,rts", "resource show qp type gsi", "res show qp lqpn 1,17-999999",
		"statistic show", "stat show link " + d + "/1", "system show",
	} {
		t.Run(line, func(t *testing.T) {
			args := strings.Fields(line)
			for _, form := range []string{"-j", "-jp", ""} {
				full := args
				if form != "" {
					full = append([]string{form}, args...)
				}
				want, got := run(t, 0, rdma, full...), run(t, 0, "rdmashim", full...)
				asRDMA := run(t, 0, "rdma", full...)
				require.Equal(t, 0, want.code, want.stderr)
				require.Equal(t, 0, got.code, got.stderr)
				require.Equal(t, got, asRDMA, "called as rdma, the same")
				if keys, ok := newer[line]; ok {
					if form == "-j" {
						compareExcept(t, want.stdout, got.stdout, keys)
					}
					continue
				}
				require.Equal(t, want.stdout, got.stdout)
				if form == "-j" {
					require.NotEmpty(t, decode(t, got.stdout), "the comparison compares nothing")
				}
			}
		})
	}
}

// compareExcept compares rows without the keys that this iproute2 may not know.
func compareExcept(t *testing.T, want, got string, keys []string) {
	t.Helper()
	if !strings.HasPrefix(want, "[") {
		return // rdma system show knows no JSON
	}
	w, g := decode(t, want), decode(t, got)
	require.Len(t, g, len(w))
	for i := range w {
		for _, k := range keys {
			if _, known := w[i][k]; !known {
				delete(g[i], k)
			}
		}
	}
	require.Equal(t, w, g)
}

func decode(t *testing.T, s string) (list []map[string]any) {
	t.Helper()
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
