package uapi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// FuzzExchange connects a queue pair over a stream to a peer that sends any
// bytes: from the first byte on, after an introduction that is right, in frames
// that are right, or an introduction with some bytes changed. It connects, or
// gives one of the documented errors; it reads its frames and not a byte more,
// and leaks nothing.
func FuzzExchange(f *testing.F) {
	d := must.Get(Open("sim?net=fuzz-exchange", OpenConfig{}))(f)
	f.Cleanup(func() { require.NoError(f, d.Close()) })
	other := must.Get(d.CreateQP(1, 1))(f)
	f.Cleanup(func() { require.NoError(f, d.DestroyQP(other)) })
	buf := make([]byte, 100)
	mr := must.Get(d.RegMR(buf, AccessLocalWrite|AccessRemoteWrite))(f)
	f.Cleanup(func() { require.NoError(f, d.DeregMR(mr)) })
	peer := Introduction{Regions: introduction.Regions, Data: introduction.Data}
	peer.Endpoint = must.Get(d.LocalEndpoint(other))(f)
	handles := len(d.OpenHandles())

	payload := must.Get(introduction.append(nil))(f)
	f.Add(byte(rawPeer), frame(frameIntroduce, payload))
	f.Add(byte(rawPeer), []byte("RDIN\x02\x02\x00\x00\x00\x00\x00\x00"))
	f.Add(byte(rawPeer), []byte("HTTP/1.1 400 Bad Request\r\n"))
	f.Add(byte(rawPeer), binary.BigEndian.AppendUint32([]byte("RDIN\x02\x01\x00\x00"), 1<<31))
	path := []byte{0, 0, 4, 0}
	f.Add(byte(politePeer), append(frame(framePath, path), frame(frameReady, nil)...))
	f.Add(byte(politePeer), append(frame(framePath, path), frame(frameReady, path)...))
	f.Add(byte(politePeer), append(frame(framePath, []byte{0, 0, 0, 7}), frame(frameReady, nil)...))
	f.Add(byte(framingPeer), []byte{framePath, 4, 0, 0, 1, 0, frameReady, 0, 'm', 'o'})
	f.Add(byte(changingPeer), []byte{1, 5, 9, framePath, 4, 0, 0, 16, 0, frameReady, 0})
	f.Fuzz(func(t *testing.T, how byte, sent []byte) {
		all := stream(peer, how, sent)
		used := 0
		if in, err := Exchange(t.Context(), &scripted{in: bytes.NewReader(all)}, introduction); err == nil {
			b := must.Get(in.append(nil))(t)
			used = frameHeader + len(b)
			require.Equal(t, all[:used], frame(frameIntroduce, b), "there is one way to say it")
		}
		conn := &scripted{in: bytes.NewReader(all)}
		qp := must.Get(d.CreateQP(4, 4))(t)
		theirs, err := d.ConnectOver(t.Context(), conn, qp, []MR{mr}, []byte("mine"))
		info := must.Get(d.QueryQP(qp))(t)
		if err != nil {
			var op *OpError
			require.ErrorAs(t, err, &op)
			require.True(t, slices.ContainsFunc([]error{
				syscall.EPROTO, syscall.EPROTONOSUPPORT, syscall.EMSGSIZE, syscall.EINVAL, io.ErrUnexpectedEOF, syscall.EAFNOSUPPORT, syscall.ENETUNREACH,
			}, func(e error) bool { return errors.Is(err, e) }), "%v", err)
		} else {
			require.Equal(t, StateRTS, info.State)
			require.Equal(t, theirs.Endpoint, info.Remote)
			require.LessOrEqual(t, info.MTU, theirs.Endpoint.MTU)
			used += frameHeader + 4 + frameHeader
			require.Equal(t, len(all)-used, conn.in.Len(), "not a byte more is read")
		}
		first := must.Get(readFrame(&conn.out, frameIntroduce))(t)
		mine := must.Get(parseIntroduction(first))(t)
		require.Equal(t, "mine", string(mine.Data))
		require.NoError(t, d.DestroyQP(qp))
		require.Len(t, d.OpenHandles(), handles)
	})
}

// The peers, by how much of the protocol they follow.
const (
	rawPeer      = iota // nothing
	politePeer          // introduce themselves
	framingPeer         // and send frames, of any kind
	changingPeer        // the same, after an introduction of which bytes were changed
	peerKinds
)

// stream returns the bytes that a kind of peer sends; data says where they
// differ from the right ones.
func stream(peer Introduction, how byte, data []byte) (all []byte) {
	payload, err := peer.append(nil)
	if err != nil {
		panic(err)
	}
	switch how % peerKinds {
	case rawPeer:
		return data
	case politePeer:
		return append(frame(frameIntroduce, payload), data...)
	case changingPeer:
		if len(data) > 0 {
			changes := int(data[0] % 8)
			for data = data[1:]; changes > 0 && len(data) >= 2; changes-- {
				payload[int(data[0])%len(payload)] = data[1]
				data = data[2:]
			}
		}
	}
	all = frame(frameIntroduce, payload)
	for len(data) >= 2 {
		n := min(int(data[1]), len(data)-2)
		all = append(all, frame(data[0], data[2:2+n])...)
		data = data[2+n:]
	}
	return append(all, data...)
}

func frame(kind byte, payload []byte) []byte {
	var b bytes.Buffer
	_ = writeFrame(&b, kind, payload)
	return b.Bytes()
}

// scripted is a connection to a peer that has sent all it will and then hung
// up.
type scripted struct {
	in  *bytes.Reader
	out bytes.Buffer
}

func (s *scripted) Read(b []byte) (int, error)       { return s.in.Read(b) }
func (s *scripted) Write(b []byte) (int, error)      { return s.out.Write(b) }
func (s *scripted) Close() error                     { return nil }
func (s *scripted) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *scripted) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *scripted) SetDeadline(time.Time) error      { return nil }
func (s *scripted) SetReadDeadline(time.Time) error  { return nil }
func (s *scripted) SetWriteDeadline(time.Time) error { return nil }
