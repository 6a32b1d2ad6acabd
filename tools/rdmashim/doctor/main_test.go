package doctor

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, func() []*cobra.Command { return []*cobra.Command{Command()} })
}

// checkNames lists the checks in their order.
func checkNames() (list []string) {
	for _, c := range checks {
		list = append(list, c.name)
	}
	return list
}
