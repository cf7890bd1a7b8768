#include "congestion/reaction_point.hpp"

namespace roce::congestion {

std::string_view name_of(const RpConfig& config) {
  if (const auto* dcqcn = std::get_if<DcqcnConfig>(&config)) return dcqcn->preset;
  return std::holds_alternative<FixedRate>(config) ? "fixed" : "none";
}

Result<void> validate(const RpConfig& config, Rate line) {
  if (const auto* dcqcn = std::get_if<DcqcnConfig>(&config)) return validate(*dcqcn, line);
  if (const auto* fixed = std::get_if<FixedRate>(&config); fixed && !(fixed->rate.mbps() > 0))
    return failure("rate", "a fixed rate must be above 0", "give one, or take no control");
  return {};
}

ReactionPoint::ReactionPoint(const RpConfig& config, Rate line) {
  if (const auto* dcqcn = std::get_if<DcqcnConfig>(&config))
    state_.emplace<Dcqcn>(*dcqcn, line);
  else if (const auto* fixed = std::get_if<FixedRate>(&config))
    state_ = *fixed;
}

RpSnapshot ReactionPoint::snapshot(Instant now) {
  if (Dcqcn* dcqcn = std::get_if<Dcqcn>(&state_)) {
    dcqcn->settle(now);
    return {dcqcn->rc(), dcqcn->rt(),   dcqcn->alpha(), dcqcn->t(),
            dcqcn->bc(), dcqcn->cnps(), dcqcn->cuts(),  dcqcn->active()};
  }
  const Rate rate = this->rate(now);
  RpSnapshot snapshot;
  snapshot.rc = snapshot.rt = rate;
  snapshot.limited = !rate.is_unlimited();
  return snapshot;
}

}  // namespace roce::congestion
