package stack

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/child"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/uapi"
)

const comesAndGoes = "RDMASHIM_TEST_COMES"

// TestOwnersComeAndGo: programs that open and close an address's device beside
// each other have it each time, whichever of them just gets it or leaves it.
func TestOwnersComeAndGo(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	var all []child.Helper
	for range 4 {
		all = append(all, child.Start(t, comesAndGoes+"=1", "-test.run=^TestComesHelper$"))
	}
	for _, h := range all {
		require.Equal(t, "<nil>\n", must.Get(h.Out.ReadString('\n'))(t))
	}
}

// TestComesHelper is such a program.
func TestComesHelper(t *testing.T) {
	if os.Getenv(comesAndGoes) == "" {
		return
	}
	for range 100 {
		d, err := uapi.OpenLocal("127.0.0.1", uapi.OpenConfig{})
		if err == nil {
			err = d.Close()
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(nil)
}
