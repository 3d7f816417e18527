package api

import (
	"fmt"
	"time"
)

// eventID makes an ID whose order as text is the order in time, as the IDs of Talos are.
func eventID(now time.Time, sequence int) string {
	return fmt.Sprintf("%016x%08x", now.UnixNano(), uint32(sequence))
}
