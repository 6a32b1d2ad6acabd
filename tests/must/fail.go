package must

import "github.com/stretchr/testify/require"

// Fail ends the test unless a call failed with the error that is asked for. It
// is for calls of which a test looks at nothing else.
func Fail[T any](_ T, err error) func(t require.TestingT, target error, what ...any) {
	return func(t require.TestingT, target error, what ...any) {
		require.ErrorIs(t, err, target, what...)
	}
}
