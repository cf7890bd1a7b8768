// Fault rules as the programs' --fault gives them: those of the fabric, under this module's name.
#pragma once

#include "fabric/fault_rule.hpp"

namespace roce::port {

using fabric::fault_action_name;
using fabric::fault_rule_help;
using fabric::FaultAction;
using fabric::FaultDirection;
using fabric::FaultRule;
using fabric::parse_fault_rule;
using fabric::PsnOrigin;

}  // namespace roce::port
