package stack

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

// TestRegistrationBeside: a registration is at an address that another process
// has, as uapi.Listen's device is, and both are reached there.
func TestRegistrationBeside(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	serve(t, "127.0.0.1:7000")
	at := func(addr string) *registration.Registration {
		r, err := registration.Open(t.Context(), registration.Config{
			Transport: registration.Soft{Addr: addr}, Insecure: true, Protocol: "beside",
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, r.Close()) })
		return r
	}
	l := must.Get(at("127.0.0.1").Listen(t.Context(), 7001))(t)
	c := must.Get(at("127.0.0.2").Dial(t.Context(), "127.0.0.1:7001"))(t)
	s := must.Get(c.OpenStreamSync(t.Context()))(t)
	must.Get(s.Write([]byte("here")))(t)
	require.NoError(t, s.Close())
	accepted := must.Get(must.Get(l.Accept(t.Context()))(t).AcceptStream(t.Context()))(t)
	require.Equal(t, "here", string(must.Get(io.ReadAll(accepted))(t)))

	d := must.Get(uapi.Open("soft:127.0.0.9", uapi.OpenConfig{}))(t)
	require.Equal(t, "127.0.0.1:7000", reached(t, d, "127.0.0.1:7000"))
	require.NoError(t, d.Close())
}
