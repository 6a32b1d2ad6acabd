package uapi

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

var introduction = Introduction{
	Endpoint: endpoint4,
	Regions:  []Region{{Addr: 0x7f0000001000, Length: 4096, RKey: 0xabcd01, Access: AccessLocalWrite | AccessRemoteWrite}, {Addr: 1, Length: 2, RKey: 3}},
	Data:     []byte("hello"),
}

func TestExchange(t *testing.T) {
	for _, transport := range []string{"tcp", "pipe"} {
		t.Run(transport, func(t *testing.T) {
			a, b := connected(t, transport)
			type result struct {
				in  Introduction
				err error
			}
			done := make(chan result)
			other := Introduction{Endpoint: Endpoint{Addr: endpoint4.Addr, QPN: 1, MTU: 256}}
			go func() {
				in, err := Exchange(t.Context(), b, other)
				done <- result{in, err}
			}()
			got := must.Get(Exchange(t.Context(), a, introduction))(t)
			require.Equal(t, other, got)
			r := <-done
			require.NoError(t, r.err)
			require.Equal(t, introduction, r.in)

			// The connection stays usable, and nothing of it was swallowed.
			go a.Write([]byte("further"))
			text := make([]byte, 7)
			must.Get(io.ReadFull(b, text))(t)
			require.Equal(t, "further", string(text))
		})
	}
}

func connected(t *testing.T, transport string) (a, b net.Conn) {
	if transport == "pipe" {
		a, b = net.Pipe()
	} else {
		ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer ln.Close()
		a = must.Get(net.Dial("tcp", ln.Addr().String()))(t)
		b = must.Get(ln.Accept())(t)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// The frame as its documentation says, byte by byte.
func TestIntroductionBytes(t *testing.T) {
	payload := must.Get(introduction.append(nil))(t)
	frame := frame(frameIntroduce, payload)
	require.Equal(t, "5244494e"+"02"+"01"+"0000"+"00000065"+
		endpoint4Hex+"00000002"+"00000005"+
		"00007f0000001000"+"0000000000001000"+"00abcd01"+"00000003"+
		"0000000000000001"+"0000000000000002"+"00000003"+"00000000"+
		hex.EncodeToString([]byte("hello")), hex.EncodeToString(frame))

	for n := range payload {
		in, err := parseIntroduction(payload[:n])
		require.ErrorIs(t, err, syscall.EINVAL, "%d bytes", n)
		require.Zero(t, in)
	}
	for n := range frame {
		_, err := readFrame(bytes.NewReader(frame[:n]), frameIntroduce)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", n)
	}
}

func TestExchangeWithHostilePeer(t *testing.T) {
	good := frame(frameIntroduce, must.Get(introduction.append(nil))(t))
	put := func(at int, v ...byte) []byte { return slices.Replace(bytes.Clone(good), at, at+len(v), v...) }
	for name, c := range map[string]struct {
		sends []byte
		want  error
	}{
		"http":              {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), syscall.EPROTO},
		"nothing":           {nil, io.ErrUnexpectedEOF},
		"half":              {good[:30], io.ErrUnexpectedEOF},
		"version":           {put(4, 1), syscall.EPROTONOSUPPORT},
		"kind":              {put(5, 2), syscall.EPROTO},
		"reserved":          {put(7, 1), syscall.EPROTO},
		"4 GiB":             {put(8, 0xff, 0xff, 0xff, 0xff), syscall.EMSGSIZE},
		"endpoint":          {put(12, 0), syscall.EINVAL},
		"endpoint version":  {put(16, 9), syscall.EPROTONOSUPPORT},
		"many regions":      {put(frameHeader+endpointSize, 0xff), syscall.EINVAL},
		"much data":         {put(frameHeader+endpointSize+4, 0xff), syscall.EINVAL},
		"region wraps over": {put(frameHeader+introFixed, bytes.Repeat([]byte{0xff}, 16)...), syscall.EINVAL},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := connected(t, "tcp")
			go func() {
				b.Write(c.sends)
				b.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, b)
			}()
			in, err := Exchange(t.Context(), a, introduction)
			require.ErrorIs(t, err, c.want)
			require.Zero(t, in)
			var op *OpError
			require.ErrorAs(t, err, &op)
			require.Equal(t, "Exchange", op.Op)
		})
	}
}

func TestExchangeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe() // no program serves b
		defer a.Close()
		defer b.Close()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := Exchange(ctx, a, introduction)
		require.ErrorIs(t, err, context.Canceled)

		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = Exchange(ctx, a, introduction)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, err.(*OpError).Timeout())

		start := time.Now()
		_, err = Exchange(context.Background(), a, introduction)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, DefaultExchangeTimeout, time.Since(start))

		// The deadline does not stick to the connection.
		go b.Write([]byte{1})
		_, err = a.Read(make([]byte, 1))
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	})
}

// A deadline that the connection has from its earlier use does not count, be it
// over or still to come: ctx says how long.
func TestExchangeReplacesDeadlines(t *testing.T) {
	for name, left := range map[string]time.Duration{"over": -time.Hour, "to come": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := net.Pipe()
				defer a.Close()
				defer b.Close()
				require.NoError(t, a.SetDeadline(time.Now().Add(left)))
				done := make(chan error)
				go func() {
					time.Sleep(10 * time.Second) // of the bubble's clock: later than either deadline
					_, err := Exchange(t.Context(), b, introduction)
					done <- err
				}()
				must.Get(Exchange(t.Context(), a, introduction))(t)
				require.NoError(t, <-done)
			})
		})
	}
}

func TestExchangeRefusesItsOwnMistakes(t *testing.T) {
	a, _ := connected(t, "pipe")
	_, err := Exchange(t.Context(), a, Introduction{})
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = Exchange(t.Context(), a, Introduction{Endpoint: endpoint4, Data: make([]byte, maxIntroData+1)})
	require.ErrorIs(t, err, syscall.EMSGSIZE)
	_, err = Exchange(t.Context(), a, Introduction{Endpoint: endpoint4, Regions: make([]Region, maxRegions+1)})
	require.ErrorIs(t, err, syscall.EMSGSIZE)
	_, err = Exchange(t.Context(), nil, introduction)
	require.ErrorIs(t, err, syscall.EINVAL)
}
