package gidtable

import (
	"io/fs"
	"net/netip"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	root := fstest.MapFS{
		"ports/1/gids/10":            {Data: []byte("0000:0000:0000:0000:0000:ffff:0a00:0001\n")},
		"ports/1/gids/2":             {Data: []byte("fe80::1\n")},
		"ports/1/gids/3":             {Data: []byte("0000:0000:0000:0000:0000:0000:0000:0000\n")},
		"ports/1/gids/4":             {Data: []byte("10.0.0.1\n")},
		"ports/1/gids/5":             {},
		"ports/1/gids/6":             {Data: []byte("fe80::1%eth0\n")},
		"ports/1/gids/7":             {Data: []byte("zz\n")},
		"ports/1/gids/x":             {Data: []byte("fe80::1\n")},
		"ports/1/gid_attrs/types/10": {Data: []byte("RoCE v2\n")},
		"ports/1/gid_attrs/ndevs/10": {Data: []byte("eth0\n")},
	}
	list, err := Read(func(dir string) (names []string, err error) {
		entries, err := fs.ReadDir(root, dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names, err
	}, func(file string) string {
		text, _ := fs.ReadFile(root, file)
		return string(text)
	}, "ports/1")
	require.NoError(t, err)
	require.Equal(t, []Entry{
		{Index: 2, Addr: netip.MustParseAddr("fe80::1")},
		{Index: 10, Addr: netip.MustParseAddr("::ffff:10.0.0.1"), Type: TypeV2, NetDev: "eth0"},
	}, list)
	_, err = Read(func(string) ([]string, error) { return nil, fs.ErrNotExist }, nil, "ports/2")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestRank(t *testing.T) {
	for i, c := range []struct {
		addr string
		v2   bool
	}{{"::ffff:10.0.0.1", true}, {"2001:db8::1", true}, {"fe80::1", true}, {"10.0.0.1", false}, {"2001:db8::1", false}, {"fe80::1", false}} {
		require.Equal(t, i, Rank(netip.MustParseAddr(c.addr), c.v2), c)
	}
}

func FuzzGID(f *testing.F) {
	f.Add("fe80:0000:0000:0000:88e1:59ff:fe53:5275")
	f.Add("::ffff:1.2.3.4")
	f.Fuzz(func(t *testing.T, s string) {
		if a, ok := parse(s); ok && (!a.Is6() || a.Zone() != "" || a.IsUnspecified()) {
			t.Fatalf("%q is %v", s, a)
		}
	})
}
