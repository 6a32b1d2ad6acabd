package uapi_test

import (
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// Bytes that Prepare writes into the private data go with the request.
func TestPrepareFillsInThePrivateData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := uapitest.Listen(t, "")
		said, rejected := make(chan uint32, 1), make(chan error, 1)
		go func() {
			r, err := l.Accept(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			said <- binary.BigEndian.Uint32(r.PrivateData)
			rejected <- r.Reject(0, nil)
		}()
		private := make([]byte, 4)
		var made uapi.QP
		_, err := c.Dial(t.Context(), l.Addr().String(), uapi.DialConfig{Private: private, Prepare: func(qp uapi.QP) error {
			made = qp
			binary.BigEndian.PutUint32(private, uint32(qp))
			return nil
		}})
		require.ErrorIs(t, err, uapi.ErrRefused)
		require.NotZero(t, made)
		require.Equal(t, uint32(made), <-said)
		require.NoError(t, <-rejected)
	})
}
