package denial

import "flag"

// go test ./resolver/... hands the flags of package resolver's scenarios to every package's tests.
var (
	_ = flag.String("scenarios", "", "read by the tests of package resolver")
	_ = flag.String("topics", "", "read by the tests of package resolver")
)
