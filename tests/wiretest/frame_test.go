package wiretest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/wiretest"
)

// offsets in a pcap file of one frame
const (
	fileHeader = 24
	frame      = fileHeader + 16
	ip         = frame + 14
)

// first returns a recording cut behind its first frame.
func first(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../testdata", name))
	require.NoError(t, err)
	n := int(b[fileHeader+8]) | int(b[fileHeader+9])<<8
	return b[:frame+n]
}

func TestRead(t *testing.T) {
	fs, err := wiretest.Read(first(t, "rxe-6.1-uc-ud.pcap"))
	require.NoError(t, err)
	require.Len(t, fs, 1)
	f := fs[0]
	require.Equal(t, 1, f.Number)
	require.Equal(t, "10.99.0.1", f.Src.Addr().String())
	require.Equal(t, "10.99.0.2:4791", f.Dst.String())
	require.True(t, f.IPv4() && f.DF)
	require.NotZero(t, f.ID)
	require.EqualValues(t, 64, f.TTL)
	require.Len(t, f.UDP, 16)

	fs, err = wiretest.Read(first(t, "rxe-6.1-ipv6.pcap"))
	require.NoError(t, err)
	require.False(t, fs[0].IPv4())
	require.Zero(t, fs[0].ID)
}

// TestReadRefuses changes one byte of a good file at a time, and cuts it.
func TestReadRefuses(t *testing.T) {
	for _, name := range []string{"rxe-6.1-uc-ud.pcap", "rxe-6.1-ipv6.pcap"} {
		good := first(t, name)
		for i := range good {
			_, err := wiretest.Read(good[:i])
			if i == fileHeader {
				require.NoError(t, err, "a file without frames")
				continue
			}
			require.Error(t, err, "%d bytes", i)
		}
		for _, at := range []int{
			0, 20, // magic, link type
			fileHeader + 8, fileHeader + 12, // recorded and original length
			frame + 12, // EtherType
			ip,         // version
		} {
			b := bytes.Clone(good)
			b[at] ^= 0xff
			_, err := wiretest.Read(b)
			require.Error(t, err, "%s byte %d", name, at)
		}
	}
	for what, at := range map[string]int{"fragment": ip + 6, "protocol": ip + 9, "IP length": ip + 2, "UDP length": ip + 24} {
		b := first(t, "rxe-6.1-uc-ud.pcap")
		b[at] ^= 0x21
		_, err := wiretest.Read(b)
		require.Error(t, err, what)
	}
	_, err := wiretest.ReadFile("no such file")
	require.ErrorIs(t, err, os.ErrNotExist)
}
