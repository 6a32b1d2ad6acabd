package must

import "github.com/stretchr/testify/require"

// Get returns the value of a call, and ends the test if there was an error.
// The failure shows the whole chain of calls.
func Get[T any](v T, err error) func(t require.TestingT) T {
	return func(t require.TestingT) T {
		require.NoError(t, err)
		return v
	}
}
