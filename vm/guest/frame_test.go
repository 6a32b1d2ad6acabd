package guest

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type buffer struct{ bytes.Buffer }

func TestFrames(t *testing.T) {
	var b buffer
	c := NewConn(&b)
	require.NoError(t, c.Write(KindStdout, []byte("hello")))
	require.Equal(t, []byte{byte(KindStdout), 0, 0, 0, 5, 'h', 'e', 'l', 'l', 'o'}, b.Bytes())
	require.NoError(t, c.Write(KindStdinEnd, nil))
	require.NoError(t, c.WriteMessage(KindDone, Done{Code: 3}))

	kind, payload, err := c.Read()
	require.NoError(t, err)
	require.Equal(t, KindStdout, kind)
	require.Equal(t, "hello", string(payload))
	kind, payload, err = c.Read()
	require.NoError(t, err)
	require.Equal(t, KindStdinEnd, kind)
	require.Empty(t, payload)
	kind, payload, err = c.Read()
	require.NoError(t, err)
	require.Equal(t, KindDone, kind)
	var d Done
	require.NoError(t, json.Unmarshal(payload, &d))
	require.Equal(t, 3, d.Code)
	_, _, err = c.Read()
	require.Equal(t, io.EOF, err)
}

func TestFramesLarge(t *testing.T) {
	a, z := net.Pipe()
	text := strings.Repeat("x", 3*MaxPayload+1)
	go func() {
		io.WriteString(NewConn(a).Writer(KindData), text)
		a.Close()
	}()
	var got strings.Builder
	for c := NewConn(z); ; {
		kind, payload, err := c.Read()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.Equal(t, KindData, kind)
		require.LessOrEqual(t, len(payload), MaxPayload)
		got.Write(payload)
	}
	require.Equal(t, text, got.String())
	require.ErrorContains(t, NewConn(&buffer{}).WriteMessage(KindExec, Exec{Args: []string{text}}), "shorten")
}

// A command's words hold any bytes, as those of execve(2) do.
func TestExecWords(t *testing.T) {
	e := Exec{Args: []string{"sh", "", "two\nlines", "\"'\\$", "\xff\x01 not UTF-8"}, Env: []string{"A=\xfe"}, Dir: "/tmp"}
	b := new(buffer)
	c := NewConn(b)
	require.NoError(t, c.WriteMessage(KindExec, e))
	kind, payload, err := c.Read()
	require.NoError(t, err)
	require.Equal(t, KindExec, kind)
	var got Exec
	require.NoError(t, json.Unmarshal(payload, &got))
	require.Equal(t, e, got)
	require.Error(t, json.Unmarshal([]byte(`{"Args":["not base64"]}`), &got))
}

func TestFramesRefused(t *testing.T) {
	whole := []byte{byte(KindStdout), 0, 0, 0, 2, 'h', 'i'}
	for n := 1; n < len(whole); n++ {
		_, _, err := NewConn(&buffer{*bytes.NewBuffer(whole[:n])}).Read()
		require.Equal(t, io.ErrUnexpectedEOF, err, "cut to %d bytes", n)
	}
	for _, bad := range [][]byte{{0, 0, 0, 0, 0}, {byte(kindEnd), 0, 0, 0, 0}, {255, 0, 0, 0, 0}, {1, 0, 0, 0x80, 1}, {1, 255, 255, 255, 255}} {
		_, _, err := NewConn(&buffer{*bytes.NewBuffer(bad)}).Read()
		require.ErrorIs(t, err, ErrFrame)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte{byte(KindStdout), 0, 0, 0, 2, 'h', 'i'})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := NewConn(&buffer{*bytes.NewBuffer(b)})
		for {
			if _, _, err := c.Read(); err != nil {
				return
			}
		}
	})
}
