// The list of algorithms. A new algorithm is added here and nowhere else.
#pragma once

#include "algorithms/adiana.h"
#include "algorithms/asgd.h"
#include "algorithms/coded_gd.h"
#include "algorithms/cofig.h"
#include "algorithms/dasha.h"
#include "algorithms/dcgd.h"
#include "algorithms/delay_adaptive_asgd.h"
#include "algorithms/diana.h"
#include "algorithms/ef14.h"
#include "algorithms/ef21.h"
#include "algorithms/ef21_bc.h"
#include "algorithms/ef21_hb.h"
#include "algorithms/ef21_p.h"
#include "algorithms/ef21_plus.h"
#include "algorithms/ef21_pp.h"
#include "algorithms/ef21_sgd.h"
#include "algorithms/ef21_sgdm.h"
#include "algorithms/ef21_w.h"
#include "algorithms/fedavg.h"
#include "algorithms/fedbuff.h"
#include "algorithms/fednl.h"
#include "algorithms/fedopt.h"
#include "algorithms/fedprox.h"
#include "algorithms/frecon.h"
#include "algorithms/fwd_grad.h"
#include "algorithms/gd.h"
#include "algorithms/marina.h"
#include "algorithms/mindflayer.h"
#include "algorithms/nesterov.h"
#include "algorithms/page.h"
#include "algorithms/pp_marina.h"
#include "algorithms/proxskip.h"
#include "algorithms/rennala.h"
#include "algorithms/ringleader.h"
#include "algorithms/ringmaster.h"
#include "algorithms/scaffold.h"
#include "algorithms/sgd_nice.h"
#include "algorithms/vr_diana.h"
#include "algorithms/vr_marina.h"

namespace gradwire {

template <template <class> class... M>
struct AlgorithmList {};

using AllAlgorithms =
    AlgorithmList<Gd, CodedGd, Nesterov, Dcgd, SgdNice, FwdGrad, FedAvg, FedProx, Scaffold, FedAdagrad,
                  FedYogi, FedAdam, ProxSkip, Diana, VrDiana, Adiana, Marina, VrMarina, PpMarina, Page, Dasha,
                  DashaPage, DashaMvr, Cofig, Frecon, Ef14, Ef21, Ef21W, Ef21Sgd, Ef21Sgdm, Ef21Pp, Ef21Bc,
                  Ef21Hb, Ef21P, Ef21Plus, FedNl, Asgd, DelayAdaptiveAsgd, Rennala, Ringmaster, Ringleader,
                  MindFlayer, FedBuff>;

}  // namespace gradwire
