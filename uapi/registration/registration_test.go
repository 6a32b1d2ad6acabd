package registration_test

import (
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/qmux"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

// TestStreamAndDatagram: a question and its answer on a stream, a stream in one
// direction and a datagram, on every transport by the same program.
func TestStreamAndDatagram(t *testing.T) {
	everywhere(t, func(t *testing.T, config registration.Config) {
		r := open(t, config)
		client, server := connect(t, r, listen(t, r))

		s := must.Get(client.OpenStreamSync(soon(t)))(t)
		must.Get(s.Write([]byte("question")))(t)
		require.NoError(t, s.Close())
		at := must.Get(server.AcceptStream(soon(t)))(t)
		text := must.Get(io.ReadAll(at))(t)
		require.Equal(t, "question", string(text))
		must.Get(at.Write([]byte("answer")))(t)
		require.NoError(t, at.Close())
		text = must.Get(io.ReadAll(s))(t)
		require.Equal(t, "answer", string(text))

		u := must.Get(server.OpenUniStreamSync(soon(t)))(t)
		must.Get(u.Write([]byte("news")))(t)
		require.NoError(t, u.Close())
		v := must.Get(client.AcceptUniStream(soon(t)))(t)
		text = must.Get(io.ReadAll(v))(t)
		require.Equal(t, "news", string(text))

		require.NoError(t, client.SendDatagram([]byte("datagram")))
		text = must.Get(server.ReceiveDatagram(soon(t)))(t)
		require.Equal(t, "datagram", string(text))

		if stats := r.Stats(); runtime.GOOS == "linux" && r.Kind() != "kernel" {
			require.NotZero(t, stats.Below.RTT)
			require.Equal(t, client.ConnectionState().Device, stats.Below.Device)
		}
		require.NoError(t, client.CloseWithError(42, "thanks"))
		<-server.Context().Done()
		_, err := server.AcceptStream(soon(t))
		var closed *qmux.ApplicationError
		require.ErrorAs(t, err, &closed)
		require.True(t, closed.Remote)
		require.EqualValues(t, 42, closed.ErrorCode)
	})
}
