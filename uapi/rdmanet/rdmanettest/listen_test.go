package rdmanettest_test

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
	"github.com/rdmashim/rdmashim/uapi/rdmanet/rdmanettest"
)

// TestServer tests an HTTP server over a link that loses packets, on
// virtual time.
func TestServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialer, l := rdmanettest.Listen(t, "loss=5%&seed=7", rdmanet.Config{})
		server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Hour) // of the bubble
			_, _ = io.WriteString(w, "hello "+r.URL.Path)
		})}
		go server.Serve(l)
		client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
		response := must.Get(client.Get("http://" + l.Addr().String() + "/peer"))(t)
		body := must.Get(io.ReadAll(response.Body))(t)
		require.NoError(t, response.Body.Close())
		require.Equal(t, "hello /peer", string(body))
		client.CloseIdleConnections()
		require.NoError(t, server.Shutdown(t.Context()))
	})
}
