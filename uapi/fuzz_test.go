package uapi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzFrame gives the out-of-band exchange whatever a peer may send: an
// introduction, or one of the errors that Exchange promises, and never more
// memory than an introduction takes.
func FuzzFrame(f *testing.F) {
	payload, err := introduction.append(nil)
	require.NoError(f, err)
	var b bytes.Buffer
	require.NoError(f, writeFrame(&b, frameIntroduce, payload))
	f.Add(byte(frameIntroduce), b.Bytes())
	f.Add(byte(frameReady), []byte("RDIN\x02\x02\x00\x00\x00\x00\x00\x00"))
	f.Add(byte(frameIntroduce), []byte("HTTP/1.1 400 Bad Request\r\n"))
	f.Add(byte(frameIntroduce), binary.BigEndian.AppendUint32([]byte("RDIN\x02\x01\x00\x00"), 1<<31))
	f.Fuzz(func(t *testing.T, kind byte, sent []byte) {
		r := bytes.NewReader(sent)
		answer, err := readFrame(r, kind)
		if err != nil {
			require.True(t, errors.Is(err, syscall.EPROTO) || errors.Is(err, syscall.EPROTONOSUPPORT) ||
				errors.Is(err, syscall.EMSGSIZE) || errors.Is(err, io.ErrUnexpectedEOF), "%v", err)
			return
		}
		require.LessOrEqual(t, len(answer), maxIntroPayload)
		require.Equal(t, len(sent)-frameHeader-len(answer), r.Len(), "not a byte more is read")
		if in, err := parseIntroduction(answer); err == nil {
			var again bytes.Buffer
			b, err := in.append(nil)
			require.NoError(t, err)
			require.NoError(t, writeFrame(&again, kind, b))
			require.Equal(t, sent[:again.Len()], again.Bytes())
		} else {
			require.True(t, errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EPROTONOSUPPORT), "%v", err)
		}
	})
}

// FuzzHostDevice reads a kernel device's attributes, whatever is in them.
func FuzzHostDevice(f *testing.F) {
	f.Add("4: ACTIVE\n", "5054:00ff:fe12:3456\n", "eth0\n", "0", "::ffff:0a00:0001\n", "RoCE v2\n")
	f.Add("", ":::", "\x00", "-1", "fe80::1%x", "IB/RoCE v1")
	dir := f.TempDir() // one for all, which is much quicker
	for _, d := range []string{"ports/1/gids", "ports/1/gid_attrs/types", "ports/1/gid_attrs/ndevs"} {
		require.NoError(f, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	f.Fuzz(func(t *testing.T, state, guid, parent, index, gid, kind string) {
		index = filepath.Base(filepath.Clean("/" + index))
		for name, text := range map[string]string{
			"ports/1/state": state, "node_guid": guid, "parent": parent,
			"ports/1/gids/" + index: gid, "ports/1/gid_attrs/types/" + index: kind, "ports/1/gids/1": gid,
		} {
			name = filepath.Join(dir, name)
			_ = os.WriteFile(name, []byte(text), 0o644) // but a name that cannot be a file's
			defer os.Remove(name)
		}
		info := hostDevice(dir, "rxe0")
		require.Equal(t, "host:rxe0", info.Device)
		for _, g := range info.GIDs {
			require.True(t, g.Addr.IsValid())
		}
	})
}
