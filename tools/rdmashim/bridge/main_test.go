package bridge

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, func() []*cobra.Command { return []*cobra.Command{Command()} })
}
