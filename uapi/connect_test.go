package uapi_test

import (
	"context"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// Two programs, one of which listens, meet over TCP and use the endpoints that
// they exchanged.
func TestConnectOverTCP(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Context) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer ln.Close()
		target := make([]byte, 100)
		mr, _ := mustMR(t, b, target, uapi.AccessLocalWrite|uapi.AccessRemoteWrite)
		qb := mustQP(t, b, uapi.QPConfig{RecvDepth: 1})

		served := make(chan error, 1)
		go func() {
			conn, err := ln.Accept()
			if err == nil {
				defer conn.Close()
				var in uapi.Introduction
				in, err = b.ConnectOver(context.Background(), conn, qb, []uapi.MR{mr}, []byte("server"))
				if string(in.Data) != "client" {
					t.Errorf("the client says %q", in.Data)
				}
			}
			served <- err
		}()

		conn, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		qa := mustQP(t, a, uapi.QPConfig{SendDepth: 1})
		peer, err := a.ConnectOver(within(t), conn, qa, nil, []byte("client"))
		require.NoError(t, err)
		require.Equal(t, "server", string(peer.Data))
		require.Len(t, peer.Regions, 1)
		require.Equal(t, uint64(100), peer.Regions[0].Length)
		require.NoError(t, <-served)

		local, _ := mustMR(t, a, []byte("over there"), 0)
		_, err = a.PostWrite(qa, local, 0, peer.Regions[0].Addr, peer.Regions[0].RKey, 10)
		require.NoError(t, err)
		require.NoError(t, next(t, a, qa).Err())
		require.Equal(t, "over there", string(target[:10]))
	})
}

func TestConnectOverRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := uapitest.Pair(t, "")
		here, there := net.Pipe()
		defer here.Close()
		defer there.Close()
		qp := mustQP(t, a, uapi.QPConfig{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := a.ConnectOver(ctx, here, 0, nil, nil)
		require.ErrorIs(t, err, syscall.EBADF)
		_, err = a.ConnectOver(ctx, here, qp, []uapi.MR{77}, nil)
		require.ErrorIs(t, err, syscall.EBADF)
		_, err = a.ConnectOver(ctx, here, qp, nil, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded, "nobody answers")

		// The peer introduces itself but never connects.
		e, err := b.LocalEndpoint(mustQP(t, b, uapi.QPConfig{}))
		require.NoError(t, err)
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go uapi.Exchange(ctx, there, uapi.Introduction{Endpoint: e})
		_, err = a.ConnectOver(ctx, here, qp, nil, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
