// The functions are inline. A target of Swift's package manager needs a source.
#include "COperationSupport.h"
