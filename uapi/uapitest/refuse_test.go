package uapitest_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// TestRefusedCalls: calls of a device fail by rule, each in the kernel's place,
// and leave nothing behind.
func TestRefusedCalls(t *testing.T) {
	for rule, fails := range map[string]func(d *uapi.Device) error{
		"call=CREATE_QP nth=1 errno=ENOMEM": func(d *uapi.Device) error {
			_, err := d.CreateQP(16, 16)
			return err
		},
		"call=CREATE_CQ nth=1 errno=ENOMEM": func(d *uapi.Device) error {
			_, err := d.CreateCQ(16)
			return err
		},
		"call=REG_MR nth=1 errno=ENOMEM": func(d *uapi.Device) error {
			_, err := d.RegMR(make([]byte, 64), uapi.AccessLocalWrite)
			return err
		},
		"call=mmap nth=1 errno=ENOMEM": func(d *uapi.Device) error {
			_, err := d.CreateQP(16, 16)
			return err
		},
	} {
		t.Run(rule, func(t *testing.T) {
			a, _ := uapitest.Pair(t, "fault="+rule)
			before := len(a.OpenHandles())
			require.ErrorIs(t, fails(a), syscall.ENOMEM)
			require.Len(t, a.OpenHandles(), before)
		})
	}
	_, err := uapi.Open("sim?fault=call=open errno=EMFILE", uapi.OpenConfig{})
	require.ErrorIs(t, err, syscall.EMFILE)
	_, err = uapi.Open("rxe0?fault=drop op=ACK", uapi.OpenConfig{})
	require.ErrorContains(t, err, "packets of a kernel device are its kernel's")

	// A doorbell that is refused is the post's error, and the next rings for
	// both: the fate of what was posted is open (Device.Post).
	a, b := uapitest.Pair(t, "fault=call=POST_SEND nth=2 errno=EAGAIN")
	x, _ := uapitest.Connect(t, a, b)
	write := func() (uapi.WRID, error) {
		return x.Write(x.QP, uapi.SGE{MR: x.MR, Length: 8}, x.Peer)
	}
	x.Must(write())
	x.Next(1)
	_, err = write()
	require.ErrorIs(t, err, syscall.EAGAIN)
	x.Must(write())
	x.Next(2)
}
