package registration_test

import (
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/qmux"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

// TestStreamAndDatagram: a question and its answer on a stream, a stream in one
// direction and a datagram, on every transport by the same program.
func TestStreamAndDatagram(t *testing.T) {
	everywhere(t, func(t *testing.T, config registration.Config) {
		r := open(t, config)
		client, server := connect(t, r, listen(t, r))

		s, err := client.OpenStreamSync(soon(t))
		require.NoError(t, err)
		_, err = s.Write([]byte("question"))
		require.NoError(t, err)
		require.NoError(t, s.Close())
		at, err := server.AcceptStream(soon(t))
		require.NoError(t, err)
		text, err := io.ReadAll(at)
		require.NoError(t, err)
		require.Equal(t, "question", string(text))
		_, err = at.Write([]byte("answer"))
		require.NoError(t, err)
		require.NoError(t, at.Close())
		text, err = io.ReadAll(s)
		require.NoError(t, err)
		require.Equal(t, "answer", string(text))

		u, err := server.OpenUniStreamSync(soon(t))
		require.NoError(t, err)
		_, err = u.Write([]byte("news"))
		require.NoError(t, err)
		require.NoError(t, u.Close())
		v, err := client.AcceptUniStream(soon(t))
		require.NoError(t, err)
		text, err = io.ReadAll(v)
		require.NoError(t, err)
		require.Equal(t, "news", string(text))

		require.NoError(t, client.SendDatagram([]byte("datagram")))
		text, err = server.ReceiveDatagram(soon(t))
		require.NoError(t, err)
		require.Equal(t, "datagram", string(text))

		if stats := r.Stats(); runtime.GOOS == "linux" && r.Kind() != "kernel" {
			require.NotZero(t, stats.Below.RTT)
			require.Equal(t, client.ConnectionState().Device, stats.Below.Device)
		}
		require.NoError(t, client.CloseWithError(42, "thanks"))
		<-server.Context().Done()
		_, err = server.AcceptStream(soon(t))
		var closed *qmux.ApplicationError
		require.ErrorAs(t, err, &closed)
		require.True(t, closed.Remote)
		require.EqualValues(t, 42, closed.ErrorCode)
	})
}
